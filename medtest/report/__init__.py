"""HTML report pages for one or several systems, and the summary printed in the terminal."""

"""Browser of cases in reports: what it shows, from records and thumbnails."""

"""Parts of a suite that do not go together, found before anything is loaded: each module finds one kind."""

"""Its folder is searched for modules: what tests of every kind of relations share is theirs too."""

"""Its folder is searched for modules: the files that tests of every kind of seeds write are built by those here."""

"""Where source cases come from: one class in one file, its defaults in ``conf/seeds/<name>.yaml``."""

"""The command ``medtest new``: a package skeleton for a custom part."""

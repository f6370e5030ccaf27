"""The command ``medtest new``: a package skeleton for a part of your own."""

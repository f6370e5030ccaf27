"""This file puts the folder on the import path: tests of all kinds of relations share its modules."""

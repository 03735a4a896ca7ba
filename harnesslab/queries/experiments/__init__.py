"""Experiments: the list, cells and certificates, what is missing while one runs, several side by side.

`cells` is where every count begins: one query for all of them, no trace read.
"""

"""Bulk inserts of trace rows: COPY on PostgreSQL, executemany on SQLite; both far faster than model objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection, models

Row = Sequence[int | bytes | None]


def insert(model: type[models.Model], columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Insert rows into a model's table inside the current transaction; `columns` are its column names."""
    made = list(rows)  # making a row may query, which a connection can't do while it copies
    table = model._meta.db_table
    names = ", ".join(columns)
    connection.ensure_connection()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            types = _column_types(model, columns)
            statement = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
            # Django wraps the errors of its own cursor calls only, and callers know Django's
            with connection.wrap_database_errors, cursor.copy(statement) as copy:
                copy.set_types(types)
                for row in made:
                    copy.write_row(row)
            return
        marks = ", ".join(["%s"] * len(columns))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - our own names
        cursor.executemany(statement, made)


_TYPES = {
    "BigAutoField": "int8",
    "IntegerField": "int4",
    "SmallIntegerField": "int2",
    "BinaryField": "bytea",
}


def _column_types(model: type[models.Model], columns: Sequence[str]) -> list[str]:
    fields = {field.column: field for field in model._meta.concrete_fields}
    return [_TYPES[fields[column].get_internal_type()] for column in columns]

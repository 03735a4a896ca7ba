"""The store app."""

from django.apps import AppConfig


class StoreConfig(AppConfig):
    """All tables of the lab."""

    name = "harnesslab.store"
    label = "store"

"""The accounts app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, roles and tokens."""

    name = "harnesslab.accounts"
    label = "accounts"

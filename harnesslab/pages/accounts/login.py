"""The login page: Django's own, with a limit on guessing."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from harnesslab.accounts import throttle
from harnesslab.core.errors import TryLater


class Login(LoginView):
    """Turns away who failed too often."""

    template_name = "accounts/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Try to log in; raises `TryLater`."""
        if throttle.must_wait(*self._who()):
            raise TryLater("too many logins failed", hint=f"try again in {throttle.WAIT_S // 60} minutes")
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Log in, and forget the failures before."""
        throttle.forget(*self._who())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Count a failure."""
        throttle.note_failure(*self._who())
        return super().form_invalid(form)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", ""), self.request.META.get("REMOTE_ADDR", "")

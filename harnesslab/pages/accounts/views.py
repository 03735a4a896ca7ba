"""One's own account: role and tokens; for admins, all users."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.accounts.models import Role
from harnesslab.actions.accounts.users import add_user, issue_token, revoke_token, set_role
from harnesslab.pages.access import may, needs, user_of
from harnesslab.pages.render import render
from harnesslab.queries.accounts import all_users, tokens_of


@needs("viewer")
def account(request: HttpRequest) -> HttpResponse:
    """Role, tokens, and for admins the users."""
    return _page(request)


@require_POST
@needs("viewer")
def token_new(request: HttpRequest) -> HttpResponse:
    """Make a token and show its secret this once."""
    _, secret = issue_token(user_of(request), request.POST.get("name", ""), request.POST.get("scope", ""))
    return _page(request, secret)


@require_POST
@needs("viewer")
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token of one's own."""
    revoke_token(user_of(request), token_id)
    return redirect("account")


@require_POST
@needs("admin")
def user_save(request: HttpRequest) -> HttpResponse:
    """Add a user, or change one's role."""
    name, role = request.POST.get("name", ""), request.POST.get("role", "")
    if request.POST.get("password"):
        add_user(user_of(request), name, request.POST["password"], role)
    else:
        set_role(user_of(request), name, role)
    messages.success(request, f"{name} is {role} now.")
    return redirect("account")


def _page(request: HttpRequest, secret: str = "") -> HttpResponse:
    context = {
        "tokens": tokens_of(user_of(request)),
        "secret": secret,
        "roles": Role.values,
        "users": all_users() if may(request, "admin") else [],
    }
    return render(request, "accounts/account.html", context)

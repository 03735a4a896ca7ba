"""Users, roles and tokens, each change audited."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from harnesslab.accounts import tokens
from harnesslab.accounts.models import RANK, ApiToken, Role, User
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.store.models import AuditEntry
from harnesslab.store.text import storable


@transaction.atomic
def issue_token(user: User, name: str, scope: str) -> tuple[ApiToken, str]:
    """Make a token; raises `InvalidValue` for an unknown scope or one above the user's role."""
    if scope not in RANK:
        raise InvalidValue(f"no such scope: {scope}", hint=f"one of {', '.join(Role.values)}")
    if not user.may(scope):
        raise InvalidValue(f"a {user.role} can't make a token with the scope {scope}")
    row, secret = tokens.issue(user, storable(name.strip(), 100) or "token", scope)
    AuditEntry.objects.create(user=user, action="issue token", subject=row.prefix, detail={"scope": scope})
    return row, secret


@transaction.atomic
def revoke_token(user: User, token_id: int) -> None:
    """End a token of the user's own; raises `NotFound`."""
    changed = ApiToken.objects.filter(pk=token_id, user=user, revoked_at=None).update(revoked_at=timezone.now())
    if not changed:
        raise NotFound("no such token of yours")
    AuditEntry.objects.create(user=user, action="revoke token", subject=str(token_id))


@transaction.atomic
def add_user(by: User | None, name: str, password: str, role: str) -> User:
    """Add a user; raises `Conflict` for a name that is taken.

    Raises `InvalidValue` for a weak password, an odd name or an unknown role.
    """
    _check_role(role)
    if not name.strip():
        raise InvalidValue("a user needs a name")
    try:
        User._meta.get_field("username").run_validators(name.strip())
        validate_password(password)
        with transaction.atomic():
            user = User.objects.create_user(name.strip(), password=password, role=role)
    except ValidationError as error:
        raise InvalidValue(" ".join(error.messages)) from error
    except IntegrityError:
        raise Conflict(f"there is a user {name} already") from None
    AuditEntry.objects.create(user=by, action="add user", subject=name, detail={"role": role})
    return user


@transaction.atomic
def set_role(by: User, name: str, role: str) -> None:
    """Change a user's role; the last admin stays one."""
    _check_role(role)
    user = User.objects.filter(username=name).first() if "\x00" not in name else None
    if user is None:
        raise NotFound(f"there is no user {name}")
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    if user.role == Role.ADMIN and role != Role.ADMIN and not others.exists():
        raise Conflict(f"{name} is the last admin")
    User.objects.filter(pk=user.pk).update(role=role)
    AuditEntry.objects.create(user=by, action="set role", subject=name, detail={"role": role})


def _check_role(role: str) -> None:
    if role not in RANK:
        raise InvalidValue(f"no such role: {role}", hint=f"one of {', '.join(Role.values)}")

"""`harnesslab export` and `harnesslab verify`."""

from __future__ import annotations

from pathlib import Path

import click

from harnesslab.actions.instance_key import instance_signer
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.canonical import bytes_digest
from harnesslab.core.errors import InvalidValue
from harnesslab.formats import bundle
from harnesslab.formats.reading.inputs import InputFile
from harnesslab.queries.bundles import bundle_of
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.manifests import manifest_bytes


@click.command("export")
@click.argument("rollout_id", type=int)
@click.option(
    "--manifest", "manifest_file", type=click.Path(dir_okay=False, path_type=Path), help="Write manifest.json."
)
@click.option("--bundle", "bundle_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a bundle.")
@click.option("--with", "others", type=int, multiple=True, help="Add the comparison with this rollout to the bundle.")
def export(rollout_id: int, manifest_file: Path | None, bundle_file: Path | None, others: tuple[int, ...]) -> None:
    """Export a rollout's manifest, or all of it as a bundle."""
    if manifest_file is None and bundle_file is None:
        raise InvalidValue("nothing to export", hint="--manifest FILE or --bundle FILE")
    ready_tables()
    rollout = get_rollout(rollout_id)
    if manifest_file is not None:
        data = manifest_bytes(rollout.manifest_id)
        manifest_file.write_bytes(data)
        click.echo(f"{manifest_file}: manifest {bytes_digest(data)}")
    if bundle_file is not None:
        signer = instance_signer()
        bundle_file.write_bytes(bundle_of(rollout_id, signer, others))
        click.echo(f"{bundle_file}: seal {bytes(rollout.head or b'').hex()}, signed by {signer.public_key}")


@click.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", default="", help="The public key that must have signed it.")
def verify(file: Path, key: str) -> None:
    """Verify a bundle offline; names the first thing that is wrong."""
    found = bundle.verify(InputFile.of_path(file).read(), file.name)
    if key and found.key != key:
        raise InvalidValue(f"signed by {found.key}, not by the given key", where="signature.json")
    click.echo(printable(f"{file.name} is whole: case {found.case}, {found.events} events"))
    click.echo(f"manifest {found.manifest}\nseal     {found.head}\nsigned by {found.key}")

"""An MLflow tracking server: runs and traces are made once, found again by their tags, and read back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.formats.mlflow.spans import MlflowSpan

PARAM, TAG = 6000, 5000
"""Characters that the server keeps of a parameter and of a tag."""
BATCH = 100
EXPERIMENT_TAG, ROLLOUT_TAG = "harnesslab.experiment", "harnesslab.rollout"
_NAME = re.compile(r"[^\w\-. :/]")
_NS = 1_000_000_000
T = TypeVar("T")


class MirrorFailed(HarnessLabError):
    """The MLflow server can't be reached, or refused."""


class TrackingServer:
    """One tracking server; the process talks to one at a time, since MLflow's tracing is global to it."""

    def __init__(self, address: str) -> None:
        os.environ.setdefault("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        try:
            import mlflow
        except ImportError:
            hint = "script/setup --mlflow"
            raise MirrorFailed("the MLflow client is not installed with this worker", hint=hint) from None
        mlflow.set_tracking_uri(address)
        self.address = address
        self._mlflow = mlflow
        self._client = mlflow.MlflowClient()

    def experiment(self, name: str) -> str:
        """Return the id of an experiment, made where it isn't there yet."""
        found = self._ask(lambda: self._client.get_experiment_by_name(name))
        if found is not None:
            return str(found.experiment_id)
        return str(self._ask(lambda: self._client.create_experiment(name)))

    def run_of(self, experiment: str, key: str) -> str:
        """Return the run that was made for one of our experiments, or nothing."""
        rows = self._ask(lambda: self._client.search_runs([experiment], f"tags.`{EXPERIMENT_TAG}` = '{key}'"))
        return str(rows[0].info.run_id) if rows else ""

    def make_run(self, experiment: str, key: str, name: str, start: float) -> str:
        """Make a run; `key` finds it again."""
        tags = {EXPERIMENT_TAG: key}
        made = self._ask(lambda: self._client.create_run(experiment, int(start * 1000), tags, name))
        return str(made.info.run_id)

    def fill_run(
        self,
        run: str,
        params: Mapping[str, JSON],
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        documents: Mapping[str, JSON],
        end: float,
    ) -> None:
        """Write what a run says; written again it says the same."""
        entities = self._mlflow.entities
        moment = int(end * 1000)
        given = [entities.Param(_key(name), _text(value)[:PARAM]) for name, value in params.items()]
        values = [entities.Metric(_key(name), float(value), moment, 0) for name, value in metrics.items()]
        said = [entities.RunTag(_key(name), value[:TAG]) for name, value in tags.items()]
        for start in range(0, len(given), BATCH):
            part = given[start : start + BATCH]
            self._ask(lambda part=part: self._client.log_batch(run, params=part))  # type: ignore[misc]
        self._ask(lambda: self._client.log_batch(run, metrics=values, tags=said))
        for name, document in documents.items():
            text = json.dumps(document, indent=1, ensure_ascii=True)
            self._ask(lambda text=text, name=name: self._client.log_text(run, text, name))  # type: ignore[misc]
        self._ask(lambda: self._client.set_terminated(run, "FINISHED", moment))

    def trace_of(self, experiment: str, key: str) -> str:
        """Return the trace that was made for one of our rollouts, or nothing."""
        where = f"tags.`{ROLLOUT_TAG}` = '{key}'"
        rows = self._ask(
            lambda: self._client.search_traces(locations=[experiment], filter_string=where, include_spans=False)
        )
        return str(rows[0].info.trace_id) if rows else ""

    def make_trace(
        self, experiment: str, run: str, root: MlflowSpan, tags: Mapping[str, str], start: float, *, failed: bool
    ) -> str:
        """Make a trace of spans that begin `start` seconds after 1970, belonging to a run."""
        client = self._client
        moment = int(start * _NS)

        def make() -> str:
            opened = client.start_trace(
                root.name, root.kind, root.inputs, _said(root), dict(tags), experiment, moment, run or None
            )
            if opened.trace_id == "MLFLOW_NO_OP_SPAN_TRACE_ID":
                raise MirrorFailed("the client made no trace", where=self.address)
            self._add(opened.trace_id, opened.span_id, root.inside, start)
            status = "ERROR" if failed else "OK"
            client.end_trace(opened.trace_id, root.outputs, None, status, int((start + root.end) * _NS))
            return str(opened.trace_id)

        made = self._ask(make)
        self._ask(lambda: client.get_trace(made))  # it is only there once the server says so
        return made

    def _add(self, trace: str, parent: str, inside: Sequence[MlflowSpan], start: float) -> None:
        for span in inside:
            attributes = _said(span)
            opened = self._client.start_span(
                span.name, trace, parent, span.kind, span.inputs, attributes, int((start + span.start) * _NS)
            )
            self._add(trace, opened.span_id, span.inside, start)
            said = {"error": span.error} if span.error else None
            status = "ERROR" if span.error else "OK"
            self._client.end_span(trace, opened.span_id, span.outputs, said, status, int((start + span.end) * _NS))

    def experiments(self) -> dict[str, str]:
        """Return the names of the server's experiments by id."""
        rows = self._ask(lambda: self._client.search_experiments(max_results=1000))
        return {str(row.experiment_id): str(row.name) for row in rows}

    def runs(self, experiment: str) -> Iterator[dict[str, JSON]]:
        """Yield the runs of an experiment as documents."""
        token = None
        while True:
            rows = self._ask(lambda token=token: self._client.search_runs([experiment], page_token=token))  # type: ignore[misc]
            for row in rows:
                yield row.to_dictionary()
            token = rows.token
            if not token:
                return

    def traces(self, experiment: str) -> Iterator[bytes]:
        """Yield the traces of an experiment as MLflow's own JSON."""
        token = None
        while True:
            rows = self._ask(
                lambda token=token: self._client.search_traces(  # type: ignore[misc]
                    locations=[experiment], max_results=50, page_token=token, order_by=["timestamp_ms ASC"]
                )
            )
            for row in rows:
                yield row.to_json().encode("utf-8", "surrogatepass")
            token = rows.token
            if not token:
                return

    def _ask(self, do: Callable[[], T]) -> T:
        """Ask the server; what it or the way to it says is one sentence."""
        try:
            return do()
        except MirrorFailed:
            raise
        except (self._mlflow.MlflowException, OSError) as error:
            said = str(error).strip().splitlines()
            raise MirrorFailed(said[0][:300] if said else type(error).__name__, where=self.address) from error


def _key(name: str) -> str:
    """Return a name that MLflow takes."""
    return _NAME.sub("_", name)[:250]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)


def _said(span: MlflowSpan) -> dict[str, Any]:
    return {name: value for name, value in span.attributes.items() if value is not None}

"""All addresses."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, path

from harnesslab.api.routes import api
from harnesslab.pages import comparisons, engines, imports, jobs, trainings
from harnesslab.pages.accounts import login
from harnesslab.pages.accounts import views as accounts
from harnesslab.pages.experiments import comparison as contrasts
from harnesslab.pages.experiments import efficiency, grids, measurements
from harnesslab.pages.experiments import views as experiments
from harnesslab.pages.projects import bindings, memos, panels, stories
from harnesslab.pages.projects import views as projects
from harnesslab.pages.reruns import regressions
from harnesslab.pages.reruns import views as reruns
from harnesslab.pages.rollouts import bundles, manifests, requests
from harnesslab.pages.rollouts import views as rollouts

urlpatterns: list[URLPattern | URLResolver] = [
    path("", projects.projects, name="projects"),
    path("health", projects.health, name="health"),
    path("login", login.Login.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    # /account/
    path("account/", accounts.account, name="account"),
    path("account/tokens/", accounts.token_new, name="token-new"),
    path("account/tokens/<int:token_id>/revoke/", accounts.token_revoke, name="token-revoke"),
    path("account/users/", accounts.user_save, name="user-save"),
    # /rollouts/
    path("rollouts/", rollouts.rollouts, name="rollouts"),
    path("rollouts/values/", rollouts.filter_values, name="rollouts-values"),
    path("rollouts/views/", rollouts.save, name="rollouts-save-view"),
    path("rollouts/<int:rollout_id>/", rollouts.rollout, name="rollout"),
    path("rollouts/<int:rollout_id>/running/", rollouts.rollout_running, name="rollout-running"),
    path("rollouts/<int:rollout_id>/events/", rollouts.rollout_events, name="rollout-events"),
    path("rollouts/<int:rollout_id>/events/<int:index>/", rollouts.rollout_event, name="rollout-event"),
    path("rollouts/<int:rollout_id>/events/<int:index>/part/", rollouts.rollout_part, name="rollout-part"),
    path("rollouts/<int:rollout_id>/notes/", rollouts.note, name="rollout-note"),
    path("rollouts/<int:rollout_id>/delete/", rollouts.delete, name="rollout-delete"),
    path("rollouts/<int:rollout_id>/move/", rollouts.move, name="rollout-move"),
    path("rollouts/<int:rollout_id>/bundle.zip", bundles.bundle, name="rollout-bundle"),
    path("rollouts/<int:rollout_id>/consistency/", reruns.consistency, name="rollout-consistency"),
    # /experiments/
    path("experiments/", experiments.experiments, name="experiments"),
    path("experiments/<int:experiment_id>/", experiments.experiment, name="experiment"),
    path("experiments/new/", measurements.experiment_form, name="experiment-new"),
    path("experiments/<int:experiment_id>/progress/", measurements.experiment_progress, name="experiment-progress"),
    path("experiments/<int:experiment_id>/cancel/", measurements.experiment_cancel, name="experiment-cancel"),
    path("projects/<int:project_id>/binding/", bindings.project_binding, name="project-binding"),
    # /panels/ and /trainings/
    path("panels/", panels.panels, name="panels"),
    path("panels/<int:revision_id>/", panels.panel, name="panel"),
    path("panels/<int:revision_id>/panel.zip", panels.panel_download, name="panel-download"),
    path("trainings/", trainings.trainings, name="trainings"),
    path("trainings/new/", trainings.training_form, name="training-new"),
    path("trainings/<int:training_id>/", trainings.training, name="training"),
    path("trainings/<int:training_id>/stop/", trainings.training_stop, name="training-stop"),
    path("trainings/<int:training_id>/resume/", trainings.training_resume, name="training-resume"),
    path("experiments/compare/", contrasts.contrast, name="experiments-compare"),
    path("experiments/grid/", grids.grid, name="experiments-grid"),
    # /projects/
    path("projects/", projects.named, name="project-named"),
    path("projects/<int:project_id>/", stories.project, name="project"),
    path("projects/<int:project_id>/memo/", memos.memo, name="project-memo"),
    # /reruns/
    path("rollouts/<int:rollout_id>/rerun/", reruns.rerun_form, name="rerun-form"),
    path("reruns/", reruns.reruns, name="reruns"),
    path("reruns/new/", reruns.rerun_form, name="rerun-several"),
    path("reruns/<int:rerun_id>/", reruns.rerun, name="rerun"),
    path("reruns/<int:rerun_id>/cancel/", reruns.rerun_cancel, name="rerun-cancel"),
    # /compare/
    path("compare/", comparisons.comparison, name="compare"),
    path("compare/rows/", comparisons.comparison_rows, name="compare-rows"),
    path("compare/row/", comparisons.comparison_row, name="compare-row"),
    path("compare/report.json", comparisons.comparison_report, name="compare-report"),
    path("compare/override/", comparisons.comparison_override, name="compare-override"),
    # /efficiency/
    path("efficiency/", efficiency.efficiency, name="efficiency"),
    # /manifests/
    path("manifests/<str:digest>.json", manifests.manifest_json, name="manifest-json"),
    path("manifests/<str:digest>/", manifests.manifest, name="manifest"),
    # /requests/
    path("requests/", requests.requests, name="requests"),
    path("requests/<str:digest>/", requests.request_answers, name="request"),
    # /import/ and /jobs/
    path("import/", imports.import_page, name="import"),
    path("import/files/", imports.import_upload, name="import-upload"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<int:job_id>/", jobs.job, name="job"),
    path("jobs/<int:job_id>/cancel/", jobs.job_cancel, name="job-cancel"),
    # /regressions/
    path("rollouts/<int:rollout_id>/regression/", regressions.regression_form, name="regression-form"),
    path("regressions/", regressions.regressions, name="regressions"),
    path("regressions/<int:regression_id>/", regressions.regression, name="regression"),
    path("regressions/<int:regression_id>/measure/", regressions.regression_measure, name="regression-measure"),
    # /engines/
    path("engines/", engines.engines, name="engines"),
    path("engines/new/", engines.engine_register, name="engine-register"),
    path("engines/<int:engine_id>/", engines.engine, name="engine"),
    path("engines/<int:engine_id>/check/", engines.engine_check, name="engine-check"),
    path("engines/<int:engine_id>/ceiling/", engines.engine_ceiling, name="engine-ceiling"),
    path("engines/<int:engine_id>/retire/", engines.engine_retire, name="engine-retire"),
    path("api/v1/", api.urls),
]

handler404 = "harnesslab.http_errors.not_found"

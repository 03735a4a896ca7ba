# The web server, the workers, the engine host and the sweeper are this one image with different commands; see docker-compose.yml.
FROM python:3.12-slim AS app
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap libfaketime git util-linux \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements/base.txt requirements/embedded.txt requirements/mlflow.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements/base.txt -r requirements/embedded.txt -r requirements/mlflow.txt
COPY . .
RUN useradd --system --create-home --uid 10001 harnesslab \
    && mkdir /data \
    && chown harnesslab /data
USER harnesslab
ENV PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    DJANGO_SETTINGS_MODULE=harnesslab.settings \
    HARNESSLAB_HOME=/data
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "harnesslab.wsgi:application", "--bind", "0.0.0.0:8000", \
     "--worker-class", "gthread", "--workers", "2", "--threads", "8", "--no-control-socket"]

FROM python:3.12-slim AS mlflow
RUN pip install --no-cache-dir "mlflow>=3,<4"
VOLUME /mlflow
EXPOSE 5000
CMD ["mlflow", "server", "--host", "0.0.0.0", "--port", "5000", \
     "--backend-store-uri", "sqlite:////mlflow/mlflow.db", "--artifacts-destination", "/mlflow/artifacts"]

# One image for `python -m worker` and for `gatewright serve`: what it does is said by its command.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
WORKDIR /src
COPY requirements-run.lock ./
# Wheels only: a source package would run its own code here, and slim has no compiler.
RUN /opt/venv/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements-run.lock
COPY pyproject.toml README.md LICENSE ./
COPY gatewright gatewright
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation --no-index .

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 gatewright \
    && useradd --uid 10001 --gid 10001 --home-dir /app --no-create-home --shell /usr/sbin/nologin gatewright \
    && install -d -o gatewright -g gatewright /data
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY workflows workflows
COPY activities activities
COPY worker worker
COPY --chmod=755 deploy/healthy.py /usr/local/bin/gatewright-healthy
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    GATEWRIGHT_DATA_DIR=/data
USER gatewright
VOLUME /data
EXPOSE 8000
# `docker run` of the server needs --health-cmd "gatewright-healthy serve"; the compose file says it.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s CMD ["gatewright-healthy", "worker"]
CMD ["python", "-m", "worker"]

# medtest from its locks, for one machine and for the nodes of a cluster. Build in the repository's root:
#   docker build -t medtest .
#   docker build -t medtest-cuda --build-arg BASE=docker.io/nvidia/cuda:12.8.1-base-ubuntu24.04 .
# buildah bud takes the same arguments. The base is Debian or Ubuntu; Python 3.11 to 3.13 comes from it or from its
# distribution. The lock's torch for Linux brings CUDA's libraries, so only the host's driver is missing (--gpus all).
# A package index of your own is a secret, which no layer keeps: --secret id=pip,src=$HOME/.config/pip/pip.conf
# Images and results are mounted, never copied in:
#   docker run --rm -v "$PWD:/work" medtest run suite=polyp_seg limit=2
# docs/clusters.md shows how to start the nodes of a Ray cluster from it.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
FROM ${BASE}
# Optional dependencies, by default what a node of a Ray cluster needs.
ARG EXTRAS=ray
# A home that every user may write to: docker run --user "$(id -u):$(id -g)" has none of its own.
ENV HOME=/home/medtest \
    USER=medtest \
    MEDTEST_HOME=/work \
    MLFLOW_DISABLE_TELEMETRY=true \
    RAY_USAGE_STATS_ENABLED=0 \
    PATH=/opt/medtest/bin:$PATH
# Debian keeps no old versions, which pins would name.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 \
    && { python3 -c 'import ensurepip, venv' || apt-get install -y --no-install-recommends python3-venv; } \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/source
COPY requirements.lock ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv /opt/medtest && pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE requirements-dev.lock ./
COPY medtest ./medtest
COPY conf ./conf
COPY suites ./suites
# Extras have the versions of the development lock, as in the tests.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    sed -n 's/^\([A-Za-z0-9._-]*==[^\\]*\)\\$/\1/p' requirements-dev.lock >versions.txt \
    && pip install --no-cache-dir -c versions.txt ".${EXTRAS:+[$EXTRAS]}" && medtest --version
# No root: results belong to the user who mounts the folder.
RUN useradd --no-create-home --uid 10001 medtest && mkdir -m 1777 "$HOME" && mkdir /work && chown medtest /work
USER 10001
WORKDIR /work
ENTRYPOINT ["medtest"]
CMD ["run", "--help"]

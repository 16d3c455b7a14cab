# The components of Interlace: interpreter, locked dependencies, package; nothing else, for amd64 and arm64.
#   docker buildx build --platform linux/amd64,linux/arm64 --tag REGISTRY/interlace:TAG --push .
# `python -m testbed image FILE` makes the same root file system without an engine or a registry.
ARG PYTHON=docker.io/library/python:3.13-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /src
COPY requirements/dev.txt requirements/dev.txt
RUN pip install --no-cache-dir --require-hashes --only-binary=:all: -r requirements/dev.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY testbed testbed
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && python -m testbed image --layer /root.tar \
    && mkdir /rootfs && tar -x -f /root.tar -C /rootfs

FROM scratch
COPY --from=build /rootfs /
ENV PATH=/usr/local/bin:/usr/bin:/bin PYTHONHOME=/usr/local PYTHONDONTWRITEBYTECODE=1
# Agent and imex-host ask for root in their Pods; the others run as they are. Nothing writes to the root file system.
USER 65532:65532
CMD ["interlace", "--help"]

# Built in one stage and run from another, so that no compiler ends up in what is deployed.
FROM python:3.13-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /build
RUN python -m venv /opt/inbox
COPY requirements.txt requirements-fast.txt ./
RUN /opt/inbox/bin/pip install --no-cache-dir --require-hashes -r requirements.txt -r requirements-fast.txt
COPY pyproject.toml README.md ./
COPY authorizer authorizer
COPY inbox inbox
RUN /opt/inbox/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim-bookworm
RUN useradd --create-home --uid 10001 inbox && install --directory --owner inbox /data
COPY --from=build /opt/inbox /opt/inbox
ENV PATH=/opt/inbox/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    INBOX_HOST=0.0.0.0 \
    INBOX_STORE=sqlite:////data/inbox.db
USER inbox
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ.get(\"INBOX_PORT\", \"8080\")}/healthz', timeout=2)"]
CMD ["inbox", "serve"]

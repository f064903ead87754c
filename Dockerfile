# Two stages, so that the image contains neither the sources nor pip's caches.
FROM python:3.13.16-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/inbox && mkdir /data
COPY requirements.txt ./
RUN /opt/inbox/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY authorizer authorizer
COPY inbox inbox
RUN /opt/inbox/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13.16-slim-bookworm
# The base image has no compiled standard library. On a read-only file system, every process would compile it again,
# including each health check.
RUN python -m compileall -q -x '/(site-packages|tests?)/' "$(python -c 'import os; print(os.path.dirname(os.__file__))')"
COPY --from=build /opt/inbox /opt/inbox
# A new volume inherits the owner of this folder.
COPY --from=build --chown=10001:10001 /data /data
ENV PATH=/opt/inbox/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    INBOX_HOST=0.0.0.0 \
    INBOX_PORT=8080 \
    INBOX_STORE=sqlite:////data/inbox.db
# Kubernetes accepts runAsNonRoot only with numeric IDs.
USER 10001:10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# Not urllib, which would use a proxy from the environment.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['INBOX_PORT']), timeout=2); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["inbox", "serve"]

"""What a page of ours may load: its own files, and nothing from another host. Nobody else's page may frame it."""

OWN_ONLY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

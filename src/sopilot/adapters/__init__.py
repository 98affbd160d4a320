"""One file each: stores, hosted models, local model, telemetry, frameworks."""

"""An IT service that resets access and deploys changes."""

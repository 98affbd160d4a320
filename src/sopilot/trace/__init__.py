"""Events, their codec and hash chain, redaction and signatures."""

"""All sessions of a store together: actions, log, seals, people, versions, deviations, privacy."""

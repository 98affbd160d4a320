from env.domains.bank.assistant import Assistant
from env.domains.bank.shed import Shed, StrictShed

_DOMAINS = ("bank", "dmv", "healthcare", "hotel", "library", "online_market", "university")
# Only the first has tasks.
domain_assistant_keys = dict.fromkeys(_DOMAINS, Assistant)
domain_keys = dict.fromkeys(_DOMAINS, Shed)
domain_keys |= {f"{domain}_strict": StrictShed for domain in _DOMAINS}

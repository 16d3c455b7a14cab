"""Names of admission: labels that users set, paths that API servers call, objects that are installed.

Here because what is installed and what serves are independent of each other and must use the same names.
"""

from __future__ import annotations

from typing import Final

FABRIC_LABEL: Final = "interlace.dev/fabric"
"""On a Pod or on its namespace: ``auto`` or a hardware family asks for injection; ``off`` on a Pod wins over the
namespace."""
AUTO: Final = "auto"
OFF: Final = "off"
GUARD_LABEL: Final = "interlace.dev/device-guard"
"""``off`` on a namespace: its Pods may ask for any device."""

INJECT_PATH: Final = "/pods/inject"
CHECK_PATH: Final = "/pods/check"
DEVICES_PATH: Final = "/pods/devices"
COMPLETE_CLAIM_PATH: Final = "/claims/complete"
CHECK_CLAIM_PATH: Final = "/claims/check"
CHECK_DOMAIN_PATH: Final = "/computedomains/check"

SERVICE: Final = "interlace-webhook"
SECRET: Final = "interlace-webhook-certificate"  # noqa: S105  the name of it
CONFIGURATION: Final = "interlace-webhook"
"""Name of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration."""
GUARD_CONFIGURATION: Final = "interlace-device-guard"
"""Name of the ValidatingWebhookConfiguration of the device guard, which may be left out."""
PORT: Final = 9443

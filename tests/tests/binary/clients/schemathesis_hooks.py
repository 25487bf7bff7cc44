"""What schemathesis has to be told: a part of an upload by tus is bytes as they are."""

import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")

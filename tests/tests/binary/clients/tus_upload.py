"""tuspy as a client: uploads FILE to URL as PATH, up to STOP bytes, and remembers where it is in STORE.

Called again with the same STORE, it goes on from there. Prints the offset it began at, and where it ended.
"""

import sys

from tusclient import client
from tusclient.storage.filestorage import FileStorage

url, token, file, path, stop, store = sys.argv[1:]
tus = client.TusClient(url, headers={"Authorization": f"Bearer {token}"})
uploader = tus.uploader(
    file,
    chunk_size=700_000,
    metadata={"path": path},
    upload_checksum=True,
    store_url=True,
    url_storage=FileStorage(store),
)
begun = uploader.offset
uploader.upload(stop_at=int(stop))
print(begun, uploader.offset)

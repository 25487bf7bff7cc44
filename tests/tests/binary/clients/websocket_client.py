"""Sends messages of many lengths to the echo at URL, several at once, and closes. Prints `done`."""

import asyncio
import sys

from aiohttp import ClientSession, WSMsgType

LENGTHS = [0, 1, 125, 126, 65_535, 65_536, 1_000_000]


async def talk(session, url):
    async with session.ws_connect(url, max_msg_size=0) as socket:
        for length in LENGTHS:
            await socket.send_bytes(bytes(number % 251 for number in range(length)))
            await socket.send_str("ü" * length)
            await socket.ping(b"ping")
        for length in LENGTHS:
            received = await socket.receive_bytes()
            assert received == bytes(number % 251 for number in range(length)), length
            assert await socket.receive_str() == "ü" * length, length
        await socket.close()
        assert socket.close_code == 1000, socket.close_code
        assert (await socket.receive()).type is WSMsgType.CLOSED


async def main():
    async with ClientSession() as session:
        await asyncio.gather(*(talk(session, sys.argv[1]) for _ in range(4)))


asyncio.run(main())
print("done")

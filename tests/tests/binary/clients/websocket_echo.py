"""A WebSocket server that sends every message back. Prints its port, and serves until it is killed."""

import asyncio

from aiohttp import web


async def echo(request):
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for message in socket:
        if message.type is web.WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is web.WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


async def main():
    app = web.Application()
    app.router.add_get("/echo", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())

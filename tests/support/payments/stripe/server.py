# Runs localstripe on a free port of this machine, and prints the port. It keeps nothing on the disk, and ends with its
# standard input.
import asyncio
import sys

from aiohttp import web
from localstripe.resources import store
from localstripe.server import app

store.dump_to_disk = lambda: None


async def main():
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("port", site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())

import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createCheck } from '../../../src/diagnosis/check.ts'
import { createConnectivity } from '../../../src/diagnosis/connectivity.ts'
import { createRunner, type CommandRunner } from '../../../src/system/runner.ts'
import { selfSignedCertificate } from '../../support/authority-certificates.ts'
import { createVerbs } from '../../../src/verbs/call.ts'

const place = {
  stateDirectory: '/nowhere',
  pam: { program: '/pamtester', service: 'edgehostd' },
  support: { program: '/support.cjs', socket: '' },
  platformProgram: '/platform.cjs',
}

/** @param outside plays the units of ping and traceroute */
function start(outside: CommandRunner = createRunner(), proxy?: string) {
  const verbs = createVerbs({ outside: () => outside, program: '/nowhere/verb.cjs', place })
  const connectivity = createConnectivity({ runner: createRunner(), verbs })
  const check = createCheck({
    connectivity,
    platformWay: async () => undefined,
    ...(proxy === undefined ? {} : { hostWay: { proxyFor: () => proxy, authorities: () => [] } }),
    monotonic: () => performance.now(),
    now: () => Date.now(),
  })
  const asked = { caller: { role: 'admin' } as const, signal: new AbortController().signal }
  return {
    connectivity,
    asked,
    check: (kind: Parameters<typeof check>[0]['kind'], target?: string) => check({ ...asked, kind, target }),
  }
}

async function listen(server: Server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

it('a name of /etc/hosts is resolved, and one without an address fails at its stage with what to do', async () => {
  const { check } = start()
  expect(await check('dns', 'localhost')).toMatchObject({
    isOk: true,
    stages: [{ name: 'dns', status: 'ok', message: expect.stringMatching(/^localhost is /) as string }],
  })
  expect(await check('tcp', 'none.invalid:80')).toMatchObject({
    isOk: false,
    stages: [{ name: 'dns', status: 'failed', message: 'none.invalid has no address' }],
    next: expect.stringContaining('getent ahosts none.invalid') as string,
  })
})

it('a port that nothing listens on is refused at the stage tcp, and one that listens is not', async () => {
  const { check } = start()
  const server = createServer((socket) => socket.end())
  const port = await listen(server)
  expect(await check('tcp', `127.0.0.1:${port}`)).toMatchObject({
    isOk: true,
    stages: [{ name: 'dns' }, { name: 'tcp', status: 'ok' }],
  })
  await new Promise((resolve) => server.close(resolve))
  expect(await check('tcp', `127.0.0.1:${port}`)).toMatchObject({
    isOk: false,
    stages: [
      { name: 'dns' },
      { name: 'tcp', status: 'failed', message: expect.stringContaining('ECONNREFUSED') as string },
    ],
    next: expect.stringContaining(`nothing listens on port ${port}`) as string,
  })
})

it('a port that speaks no TLS fails at the stage tls', async () => {
  const { check } = start()
  const port = await listen(createServer((socket) => socket.end('hello\n')))
  expect(await check('tls', `127.0.0.1:${port}`)).toMatchObject({
    isOk: false,
    stages: [{ name: 'dns' }, { name: 'tcp' }, { name: 'tls', status: 'failed' }],
    next: expect.stringContaining('speaks no TLS') as string,
  })
})

it('a registry is known by its answer to /v2/, and another server is not one', async () => {
  const { check } = start()
  const statusOf = (status: number) =>
    listen(createHttp((request, reply) => reply.writeHead(request.url === '/v2/' ? status : 500).end()))
  expect(await check('registry', `http://127.0.0.1:${await statusOf(200)}`)).toMatchObject({ isOk: true })
  expect(await check('registry', `http://127.0.0.1:${await statusOf(401)}`)).toMatchObject({
    isOk: true,
    next: expect.stringContaining('login') as string,
  })
  expect(await check('registry', `http://127.0.0.1:${await statusOf(404)}`)).toMatchObject({
    isOk: false,
    stages: [{ name: 'dns' }, { name: 'tcp' }, { name: 'http', status: 'failed' }],
  })
})

it('the largest packet that arrives whole is found, by what a router says and without it', async () => {
  const sizes: number[] = []
  /** A link that takes packets of 1400 bytes. */
  const link = (says: boolean): CommandRunner => ({
    async run(_program, args) {
      const mtu = Number(args[args.indexOf('-s') + 1]) + 28
      sizes.push(mtu)
      const said = mtu > 1400 && says ? 'From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1400)\n' : ''
      const received = mtu > 1400 ? 0 : 1
      return {
        exitCode: 1 - received,
        stdout: `${said}1 packets transmitted, ${received} received\n`,
        stderr: '',
      }
    },
  })
  const said = await start(link(true)).check('mtu', '192.0.2.1')
  expect(said.stages.at(-1)?.message).toBe('packets of up to 1400 bytes arrive whole; a router says so')
  expect(said.next).toBeUndefined()
  expect(sizes).toEqual([576, 1500, 1400])
  const silent = await start(link(false)).check('mtu', '192.0.2.1')
  expect(silent.stages.at(-1)?.message).toBe('packets of up to 1400 bytes arrive whole')
  expect(silent.next).toContain('set the MTU of the interface to 1400')
})

it('a sixth diagnosis is refused while five run, and has a place when one has ended', async () => {
  const ends: (() => void)[] = []
  const { connectivity, asked } = start({
    run: () =>
      new Promise((resolve) =>
        ends.push(() => resolve({ exitCode: 0, stdout: '1 packets transmitted, 1 received\n', stderr: '' })),
      ),
  })
  const ask = () => connectivity.ping({ ...asked, target: '192.0.2.1' })
  const five = Array.from({ length: 5 }, ask)
  await expect(ask()).rejects.toMatchObject({ code: 'DiagnosisBusy', status: 429 })
  await expect.poll(() => ends.length).toBe(5)
  ends[0]?.()
  await five[0]
  const sixth = ask()
  await expect.poll(() => ends.length).toBe(6)
  ends.forEach((end) => end())
  expect((await sixth).result.isReachable).toBe(true)
  await Promise.all(five)
})

it('a program that is not installed is named with its package', async () => {
  const missing = start({
    run: async () => ({
      exitCode: 1,
      stdout: '',
      stderr: 'Failed to find executable ping: No such file or directory\n',
    }),
  })
  await expect(missing.connectivity.ping({ ...missing.asked, target: '127.0.0.1' })).rejects.toMatchObject({
    code: 'ToolMissing',
    details: { tool: 'ping', package: 'iputils-ping' },
  })
})

it('a name without an address is the text of the reply, and no program runs', async () => {
  const { connectivity, asked } = start({ run: () => Promise.reject(new Error('a program was started')) })
  expect(await connectivity.ping({ ...asked, target: 'none.invalid' })).toEqual({
    pingHostStatus: 'ping: none.invalid has no address\n',
    result: expect.objectContaining({ isReachable: false, transmitted: 0 }) as object,
  })
  expect((await connectivity.traceroute({ ...asked, target: 'none.invalid' })).traceRouteStatus).toBe(
    'traceroute: none.invalid has no address\n',
  )
})

/** A proxy that lets through, or that answers CONNECT with this line. @returns its URL, and the targets that it was asked for */
async function startProxy(answer?: string) {
  const asked: string[] = []
  const server = createHttp()
  server.on('connect', ({ url = '' }, socket) => {
    asked.push(url)
    socket.on('error', () => undefined)
    if (answer !== undefined) return void socket.end(`HTTP/1.1 ${answer}\r\n\r\n`)
    const way = connect(Number(url.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      way.pipe(socket).pipe(way)
    })
    way.on('error', () => socket.destroy())
    socket.on('close', () => way.destroy())
  })
  const port = await listen(server)
  return { url: `http://edge:canary@127.0.0.1:${port}`, asked }
}

it('a registry is asked through the proxy of the host, which resolves its name; no login is shown', async () => {
  const { key, cert } = selfSignedCertificate('registry.plant.example', false)
  const server = createHttps({ key, cert }, ({ url }, reply) =>
    reply.writeHead(url === '/v2/' ? 401 : 404).end(),
  )
  const port = await listen(server)
  const { url, asked } = await startProxy()
  const { check } = start(createRunner(), url)
  const found = await check('registry', `registry.plant.example:${port}`)
  expect(found).toMatchObject({
    isOk: true,
    stages: [
      { name: 'route' },
      { name: 'tls' },
      { name: 'http', message: 'it is a registry, and asks for a login' },
    ],
  })
  expect(asked).toEqual([`registry.plant.example:${port}`, `registry.plant.example:${port}`])
  expect(JSON.stringify(found)).not.toContain('canary')
  expect(await check('tls', `registry.plant.example:${port}`)).toMatchObject({
    isOk: true,
    stages: [{ name: 'route' }, { name: 'tls' }],
    next: expect.stringContaining('do not accept the certificate') as string,
  })
})

it('a proxy that refuses, or that is not there, fails at the stage route', async () => {
  const { url } = await startProxy('407 Proxy Authentication Required')
  const refused = await start(createRunner(), url).check('tls', 'registry.plant.example')
  expect(refused).toMatchObject({
    isOk: false,
    stages: [{ name: 'route', status: 'failed', message: expect.stringContaining('with 407') as string }],
    next: expect.stringContaining('another login') as string,
  })
  const gone = await start(createRunner(), 'http://edge:canary@127.0.0.1:1').check(
    'tls',
    'registry.plant.example',
  )
  expect(gone).toMatchObject({
    stages: [
      {
        name: 'route',
        message: expect.stringContaining('127.0.0.1:1 cannot be reached: ECONNREFUSED') as string,
      },
    ],
  })
  expect(JSON.stringify([refused, gone])).not.toContain('canary')
})

// `platform connect` and `platform disconnect` become `platform.cjs` (room `connect`), which reads the configuration as the running daemon does
// (`support/running-daemon.ts`). `checks.ts` checks the way to the platform step by step; the last one is a registration with
// `dryRun=true`. `drop-in.ts` is pure: the text, and conflicts with other layers. `files.ts` writes token and authorities beside their
// places, has the whole configuration checked with the drop-in that is not there yet (`planned` of `loadConfig`), and puts the drop-in in
// place last: that rename is the one step.

import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { ConfigInvalid } from '../config/problem.ts'
import { loadConfig, parseCommandLine } from '../edgehostd/declarations.ts'
import { createClient } from '../ctl/client.ts'
import { confirm } from '../ctl/confirm.ts'
import { exitCodes, Failure } from '../ctl/exit-codes.ts'
import { hostSessions } from '../edgehostctl/host-sessions.ts'
import { createOutput, outputFailure, type Format, type Output } from '../ctl/output.ts'
import { createTerminal, readPaper } from '../ctl/terminal.ts'
import { eachLine } from '../ctl/layout.ts'
import { createTransport } from '../ctl/transport.ts'
import { OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'
import { findLaunch } from '../support/running-daemon.ts'
import { createRunner } from '../system/runner.ts'
import { checkLink, connectHost, writeLink } from './connect.ts'
import { disconnectHost } from './disconnect.ts'
import { placesOf } from './files.ts'
import { requireInstalled, type ThisHost } from './host.ts'
import { readHostWay } from '../configuration/way-in-place.ts'
import { readOrder } from './order.ts'
import { parseFingerprint, parsePlatformUrl, parseProxy, readAuthorities, readToken } from './inputs.ts'

/**
 * The process of `edgehostctl platform connect` and `platform disconnect`, as root on the host: it reads and writes the configuration
 * of the daemon and restarts it. edgehostctl has already checked the command line. The daemon itself starts it with `check` and `write` (`order.ts`).
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      socket: { type: 'string', default: '' },
      'token-file': { type: 'string' },
      'ca-file': { type: 'string' },
      fingerprint: { type: 'string' },
      proxy: { type: 'string' },
      yes: { type: 'boolean', default: false },
      output: { type: 'string', default: 'table' },
      'no-color': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  const [action, url = ''] = positionals
  const format = values.output as Format
  const output = createOutput({ format, paper: readPaper(process.env, values['no-color']) })
  const terminal = createTerminal()
  const transport = createTransport(
    { kind: 'socket', path: values.socket },
    { expected: undefined, ask: terminal.ask, say: output.note },
  )
  try {
    const client = createClient({
      target: { kind: 'socket', path: values.socket },
      transport,
      user: undefined,
      protocol: hostSessions,
    })
    const host = await lookAtHost(client, values.socket, output)
    if (action === 'disconnect') {
      await disconnectHost({
        ...host,
        confirm(what) {
          if (!values.yes) confirm(terminal, { what, ask: 'Disconnect it?', done: 'changed' })
        },
      })
      return
    }
    if (action === 'check' || action === 'write') {
      const order = readOrder(await text(process.stdin), parsePlatformUrl)
      const record = await (action === 'check' ? checkLink : writeLink)({
        ...host,
        ...order,
        now: () => Date.now(),
      })
      await output.show(record, () => '')
      return
    }
    const { fingerprint, proxy, 'ca-file': caFile, 'token-file': tokenFile } = values
    const link = await connectHost({
      ...host,
      hostWay: await readHostWay(),
      now: () => Date.now(),
      request: {
        url: parsePlatformUrl(url),
        token: tokenFile === undefined ? '' : readToken(tokenFile),
        ...(caFile === undefined ? {} : { authorities: readAuthorities(caFile) }),
        ...(fingerprint === undefined ? {} : { fingerprint: parseFingerprint(fingerprint) }),
        ...(proxy === undefined ? {} : { proxy: parseProxy(proxy) }),
      },
    })
    await output.show(link, () => `This host is connected to ${link.url ?? ''}.\n`)
  } finally {
    transport.close()
  }
}

/** Reads how the daemon was started, since flags and environment count more than files. */
async function lookAtHost(
  client: ThisHost['client'],
  socket: string,
  { format, note }: Output,
): Promise<ThisHost> {
  const runner = createRunner()
  const launch = await findLaunch(runner)
  const commandLine = parseCommandLine(launch?.args ?? [])
  const environment = launch?.environment ?? process.env
  const load: ThisHost['load'] = (planned, isWhole) =>
    loadConfig({
      commandLine,
      environment,
      ...(planned ? { planned } : {}),
      // Root sees every file.
      ...(isWhole ? { onUnseen: () => undefined } : {}),
    })
  const { config } = (await load(undefined, false)) as Awaited<ReturnType<typeof loadConfig>>
  const configFile = commandLine.configFile ?? (environment.EDGEHOSTD_CONFIG || '/etc/edgehostd/config.yaml')
  requireInstalled(socket, config.api.socket.path, configFile)
  const stateDirectory = config.state.directory
  return {
    places: placesOf(configFile, stateDirectory),
    stateDirectory,
    client,
    runner,
    load,
    // With -o json only the reply is on standard output.
    say: (said, mood) => {
      const line = mood === 'warning' ? `warning: ${said}` : said
      if (format === 'table') writeOutput(`${eachLine(line)}\n`)
      else note(eachLine(line))
    },
  }
}

main().catch((error: unknown) => {
  const failure = error instanceof OutputFailed ? outputFailure(error) : error
  const { message, code } = failure as NodeJS.ErrnoException
  const isConfiguration = failure instanceof ConfigInvalid
  // A bug of this program is thrown with its stack.
  if (!(failure instanceof Failure) && !isConfiguration && code === undefined) throw failure
  if (message !== '') writeError(`edgehostctl: ${eachLine(message)}\n`)
  process.exitCode =
    exitCodes[
      isConfiguration ? 'badConfiguration' : failure instanceof Failure ? failure.exitName : 'failed'
    ].code
})

import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { oneLine, renderFacts, type Fact, type Paper } from '../../ctl/layout.ts'
import { parseBody } from '../../ctl/reply.ts'
import { readBody, readMapping } from '../../ctl/request-body.ts'
import type {
  ConfigurationAccepted,
  ConfigurationDryRun,
  EdgeHostConfigurations,
  EdgeHostConfigurationStatus,
} from '../schemas.ts'

const path = `${hostPath}/configurations`
const pollMs = 500
const longestWaitMs = 300_000

const readStatus = (client: Client) => client.get<EdgeHostConfigurationStatus>(`${path}/status`, ['state'])

/** `edgehostctl configuration get`. */
export async function getConfiguration({ client, output }: Context): Promise<ExitName | undefined> {
  const configuration = await client.get<EdgeHostConfigurations>(path, [])
  const status = await readStatus(client)
  await output.show({ ...configuration, status }, (paper) => render(configuration, status, paper))
  return undefined
}

function render(
  { caCerts = [], httpProxy, httpsProxy, noProxy }: EdgeHostConfigurations,
  { state, errorMessage, waitsFor, noProxy: all }: EdgeHostConfigurationStatus,
  paper: Paper,
): string {
  const facts: Fact[] = [
    { label: 'State', lines: [state], ...(state === 'Failed' ? { mood: 'bad' as const } : {}) },
    ...(errorMessage === undefined ? [] : [{ label: 'Reason', lines: [errorMessage], mood: 'bad' as const }]),
    ...(waitsFor === undefined ? [] : [{ label: 'Waits for', lines: [waitsFor] }]),
    { label: 'HTTP proxy', lines: [httpProxy ?? 'none'] },
    { label: 'HTTPS proxy', lines: [httpsProxy ?? 'none'] },
    { label: 'No proxy', lines: [noProxy ?? 'none'] },
    ...(all === undefined ? [] : [{ label: 'with added', lines: [all] }]),
    { label: 'Authorities', lines: [String(caCerts.length)] },
  ]
  return renderFacts(facts, paper)
}

type SetContext = Context<'http-proxy' | 'https-proxy' | 'no-proxy' | 'ca-file' | 'password-file' | 'dry-run'>

/** `edgehostctl configuration set [FILE]`. */
export async function setConfiguration(context: SetContext): Promise<ExitName | undefined> {
  const { client, line, output } = context
  const body = await readWanted(context)
  if (line.options['dry-run'] !== undefined) {
    const tried = await client.change('PUT', `${path}?dryRun=true`, body)
    const plan = parseBody<ConfigurationDryRun>(tried, ['changes', 'restarts', 'noProxy'])
    await output.show(plan, (paper) => renderPlan(plan, paper))
    return undefined
  }
  const accepted = parseBody<ConfigurationAccepted>(await client.change('PUT', path, body), [
    'message',
    'uid',
  ])
  const status = await waitForEnd(client, accepted.uid)
  await output.show({ ...accepted, status }, () => `${oneLine(sentence(status))}\n`)
  return status.state === 'Failed' ? 'failed' : undefined
}

function sentence({ state, errorMessage, waitsFor }: EdgeHostConfigurationStatus): string {
  if (state === 'Failed') return `the configuration is not in place: ${errorMessage ?? 'without a reason'}`
  if (state === 'In Progress')
    return `the configuration is accepted, and is put in place ${waitsFor === undefined ? 'later' : `after ${waitsFor}`}: edgehostctl configuration get`
  return 'the configuration is in place'
}

/** The state at the end of the change; earlier where it waits for something, or another change has come. */
async function waitForEnd(client: Client, uid: string): Promise<EdgeHostConfigurationStatus> {
  const end = Date.now() + longestWaitMs
  for (;;) {
    const status = await readStatus(client)
    const isOver = status.state !== 'In Progress' || status.waitsFor !== undefined || status.uid !== uid
    if (isOver || Date.now() > end) return status
    await sleep(pollMs)
  }
}

const isNone = (text: string) => text === 'none'

async function readWanted({ client, line }: SetContext): Promise<EdgeHostConfigurations> {
  const [file] = line.arguments
  const { options } = line
  const caFiles = line.lists?.['ca-file']
  const single = ['http-proxy', 'https-proxy', 'no-proxy'] as const
  const named: string[] = single.filter((name) => options[name] !== undefined)
  if (caFiles !== undefined) named.push('ca-file')
  if (file !== undefined) {
    const [first] = [...named, ...(options['password-file'] === undefined ? [] : ['password-file'])]
    if (first !== undefined)
      throw new Failure('usage', `FILE replaces all, and --${first} changes a part; give one of them`)
    return readMapping(file, 'the configuration: httpsProxy: http://proxy.example:3128')
  }
  if (named.length === 0)
    throw new Failure(
      'usage',
      `nothing to set: give FILE, or --http-proxy, --https-proxy, --no-proxy or --ca-file`,
    )
  const password = readPassword(options['password-file'])
  const proxies = ['http-proxy', 'https-proxy'] as const
  if (password !== undefined && proxies.every((name) => isNone(options[name] ?? 'none')))
    throw new Failure(
      'usage',
      '--password-file is for a proxy that is given: --https-proxy http://USER@HOST:PORT',
    )
  const present = await client.get<EdgeHostConfigurations>(path, [])
  const proxy = (name: (typeof proxies)[number], former: string | undefined) => {
    const text = options[name]
    if (text === undefined) return former
    return isNone(text) ? undefined : withPassword(name, text, password)
  }
  const noProxy = options['no-proxy'] ?? present.noProxy
  const httpProxy = proxy('http-proxy', present.httpProxy)
  const httpsProxy = proxy('https-proxy', present.httpsProxy)
  const caCerts = caFiles === undefined ? present.caCerts : readAuthorities(caFiles)
  return {
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    ...(noProxy === undefined || isNone(noProxy) ? {} : { noProxy }),
    ...(caCerts === undefined ? {} : { caCerts }),
  }
}

function readPassword(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const [first = ''] = readBody(file, '--password-file', 65_536).toString().split(/\r?\n/)
  if (first === '') throw new Failure('usage', '--password-file: its first line is empty')
  return first
}

/** @throws Failure usage for a password on the command line */
function withPassword(name: string, text: string, password: string | undefined): string {
  if (!URL.canParse(text) || !/^https?:/i.test(text))
    throw new Failure('usage', `--${name} has to be none or a URL: http://USER@HOST:PORT`)
  const url = new URL(text)
  if (url.password !== '')
    throw new Failure(
      'usage',
      `--${name} has a password, which every user of this machine can read on the command line; use --password-file`,
    )
  if (password === undefined) return text
  if (url.username === '')
    throw new Failure('usage', `--${name} needs a user for the password: http://USER@HOST:PORT`)
  return text.replace('@', `:${encodeURIComponent(password)}@`)
}

function readAuthorities(files: readonly string[]): string[] {
  return files.filter((file) => !isNone(file)).map((file) => readBody(file, '--ca-file').toString('base64'))
}

function renderPlan({ changes, restarts, noProxy }: ConfigurationDryRun, paper: Paper): string {
  return renderFacts(
    [
      { label: 'Changes', lines: changes.length === 0 ? ['nothing'] : changes },
      { label: 'Restarts', lines: restarts.length === 0 ? ['nothing'] : restarts },
      ...(noProxy.length === 0 ? [] : [{ label: 'No proxy', lines: [noProxy.join(', ')] }]),
    ],
    paper,
  )
}

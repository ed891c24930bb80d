import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { CommandLine, Program } from '../../ctl/command.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import type { Context } from '../../ctl/client.ts'
import { renderFacts, type Fact, type Paper, count, moment, oneLine, plural } from '../../ctl/layout.ts'
import type { PlatformLink } from '../schemas.ts'

/** `platform connect URL`. */
export const connectPlatform: Program<'token-file' | 'ca-file' | 'proxy'> = async (line) => {
  const { 'token-file': token, 'ca-file': authorities, fingerprint, proxy } = line.options
  if (authorities !== undefined && fingerprint !== undefined)
    throw new Failure('usage', '--ca-file and --fingerprint exclude each other')
  const given = { 'token-file': token, 'ca-file': authorities, fingerprint, proxy }
  run(line, 'connect', [...optionsOf(given), '--', line.arguments[0] ?? ''])
}

/** `platform disconnect`. */
export const disconnectPlatform: Program<'yes'> = async (line) =>
  run(line, 'disconnect', line.options.yes === undefined ? [] : ['--yes'])

/** Becomes platform.cjs, which writes files of the host and restarts its daemon; a client of the API does neither. */
function run(line: CommandLine, action: string, more: readonly string[]): never {
  const { path: socket } = requireLocalRoot(line, {
    does: 'changes',
    reason: 'only root may change the configuration of the daemon',
  })
  const { output, 'no-color': noColor } = line.options
  const common = [...optionsOf({ socket, output }), ...(noColor === undefined ? [] : ['--no-color'])]
  become('platform.cjs', [action, ...common, ...more])
}

const optionsOf = (given: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))

/** `platform status`: the link of the host. */
export async function showLink({ client, output }: Context): Promise<ExitName | undefined> {
  const link = await client.get<PlatformLink>('/v1/edge-mgmt/platform', [
    ...(['mode', 'registrationStatus', 'isConnected', 'events'] as const),
  ])
  await output.show(link, (paper) => renderLink(link, paper))
  return link.mode === 'connected' && !link.isConnected ? 'failed' : undefined
}

function renderLink(link: PlatformLink, paper: Paper): string {
  if (link.mode === 'airgap')
    return renderFacts(
      [
        { label: 'Mode', lines: ['airgap: this host is managed here'] },
        { label: 'Connect it', lines: ['sudo edgehostctl platform connect URL --token-file FILE'] },
      ],
      paper,
    )
  const { url, proxy, isConnected, since, registrationStatus, edgeHostUid, events } = link
  const fact = (label: string, text: string | undefined): Fact[] =>
    text === undefined || text === '' ? [] : [{ label, lines: [text] }]
  const time = (timestamp: string | undefined) => timestamp && moment(timestamp)
  const state = `${isConnected ? 'connected' : 'not connected'}${since === undefined ? '' : ` since ${moment(since)}`}`
  return renderFacts(
    [
      ...fact('Platform', url),
      ...fact('Proxy', proxy),
      { label: 'State', lines: [state], mood: isConnected ? 'good' : 'bad' },
      ...(link.cause ? [{ label: 'Cause', lines: [link.cause.message], mood: 'bad' } as const] : []),
      ...fact('Next attempt', time(link.nextAttemptTimestamp)),
      ...fact('Last contact', time(link.lastContactTimestamp)),
      ...fact('Registration', registrationStatus),
      ...fact('UID there', edgeHostUid),
      ...fact('Project', edgeHostUid === undefined ? undefined : projectOf(link)),
      ...desiredFacts(link),
      {
        label: 'Events',
        lines: [
          `${count(events.waiting)} waiting${events.dropped > 0 ? `, ${plural(events.dropped, 'event')} lost` : ''}`,
        ],
      },
    ],
    paper,
  )
}

const projectOf = ({ projectUid, projectName }: PlatformLink) =>
  oneLine(projectName ?? '') || projectUid || 'none'

/** Desired cluster of the platform on this host, and its progress. */
function desiredFacts({ wanted }: PlatformLink): Fact[] {
  if (!wanted) return []
  const { number, acceptedNumber, clusterName, condition, download } = wanted
  const which = clusterName === undefined ? '' : `cluster ${clusterName}, `
  const what = number === undefined ? 'nothing any more' : `${which}number ${number}`
  const { reason, status, message = '' } = { ...condition }
  const state = message === '' ? (reason ?? '') : `${reason ?? ''}: ${message}`
  const mood: Pick<Fact, 'mood'> =
    status === 'True' ? { mood: 'good' } : status === 'False' ? { mood: 'bad' } : {}
  return [
    { label: 'Wanted', lines: [`${what}${acceptedNumber > 0 ? `; accepted ${acceptedNumber}` : ''}`] },
    ...(condition ? [{ label: 'Its state', lines: [state], ...mood }] : []),
    ...(download
      ? [
          {
            label: 'Download',
            lines: [`${count(download.receivedBytes)} of ${count(download.totalBytes)} bytes`],
          },
        ]
      : []),
  ]
}

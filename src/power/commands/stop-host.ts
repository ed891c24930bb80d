import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { confirm } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parsePointInTime } from '../../ctl/given-values.ts'
import { moment, oneLine, renderFacts, type Fact, type Paper } from '../../ctl/layout.ts'
import { parseBody } from '../../ctl/reply.ts'
import type { HostActions, StopAccepted, StopAction } from '../schemas.ts'

type StopContext = Context<'at' | 'message' | 'force' | 'yes'>

const actionsPath = `${hostPath}/actions`

const questions = {
  reboot: { will: 'reboots', ask: 'Reboot it?', done: 'rebooted', more: '' },
  shutdown: {
    will: 'is shut down',
    ask: 'Shut it down?',
    done: 'shut down',
    more: ' It has to be turned on again on site.',
  },
} as const

async function stopHost(context: StopContext, action: StopAction): Promise<undefined> {
  const { client, line, output, target, terminal } = context
  const { at, message, force, yes } = line.options
  const now = Date.now()
  const time = at === undefined ? undefined : parsePointInTime('--at', at, now, true)
  const query = new URLSearchParams({
    ...(time === undefined ? {} : { at: time }),
    ...(message === undefined ? {} : { message }),
    ...(force === undefined ? {} : { force: 'true' }),
  }).toString()
  if (yes === undefined) {
    const { will, ask, done, more } = questions[action]
    const host = target.kind === 'host' ? `The host ${oneLine(target.name)}` : 'This host'
    const when = time === undefined ? 'now' : `at ${moment(time)}`
    confirm(terminal, {
      what: `${host} ${will} ${when}; workloads and sessions of it end.${more}`,
      ask,
      done,
    })
  }
  const reply = await client.change('POST', `${actionsPath}/${action}${query === '' ? '' : `?${query}`}`)
  const accepted = parseBody<StopAccepted>(reply, ['message', 'uid'])
  await output.show(accepted, () => `${oneLine(accepted.message)}\n`)
  return undefined
}

/** `edgehostctl host reboot`. */
export const rebootHost = (context: StopContext) => stopHost(context, 'reboot')

/** `edgehostctl host shutdown`. */
export const shutDownHost = (context: StopContext) => stopHost(context, 'shutdown')

/** `edgehostctl host stops [cancel]`. */
export async function showStops({ client, line, output }: Context): Promise<undefined> {
  const [verb] = line.arguments
  if (verb !== undefined && verb !== 'cancel')
    throw new Failure('usage', `${JSON.stringify(verb)}: the only word here is cancel`)
  const actions = await client.get<HostActions>(actionsPath, ['items'])
  if (verb === undefined) {
    await output.show(actions, (paper) => renderStops(actions, paper))
    return undefined
  }
  const planned = actions.items.find(({ state }) => state === 'planned')
  if (!planned) throw new Failure('failed', 'no reboot or shutdown of this host is planned')
  await client.change('DELETE', `${actionsPath}/${planned.uid}`)
  output.note(`The ${planned.action} that was planned for ${moment(planned.atTimestamp ?? '')} is cancelled.`)
  return undefined
}

function renderStops({ items, last, boot, reset }: HostActions, paper: Paper): string {
  const facts: Fact[] = [
    ...items.map((stop): Fact => ({
      label: stop.state === 'planned' ? 'Planned' : 'Under way',
      lines: linesOf(stop),
      mood: 'warning',
    })),
    ...(items.length === 0 ? [{ label: 'Planned', lines: ['nothing'] }] : []),
    ...(last
      ? [
          {
            label: 'Last',
            lines: linesOf(last),
            ...(last.state === 'failed' ? { mood: 'bad' as const } : {}),
          },
        ]
      : []),
    ...(reset
      ? [
          {
            label: 'Reset',
            lines: [
              `${moment(reset.creationTimestamp)}, by ${oneLine(reset.by)}: ${reset.phase ?? `done ${moment(reset.endTimestamp ?? '')}`}`,
              ...(reset.reason === undefined ? [] : [reset.reason]),
            ],
            ...(reset.phase === undefined ? {} : { mood: 'warning' as const }),
          },
        ]
      : []),
    ...(boot
      ? [
          {
            label: 'Boot',
            lines: [`${moment(boot.startTimestamp)}: ${boot.message}`],
            ...(boot.isOrderly ? {} : { mood: 'warning' as const }),
          },
        ]
      : []),
  ]
  return renderFacts(facts, paper)
}

const linesOf = ({
  action,
  state,
  atTimestamp,
  creationTimestamp,
  by,
  message,
  reason,
  isForced,
}: HostActions['items'][number]): string[] => [
  `${action}${isForced ? ', forced' : ''}, ${moment(atTimestamp ?? creationTimestamp)}, by ${oneLine(by)}${state === 'failed' ? ': not done' : ''}`,
  ...(message === '' ? [] : [message]),
  ...(reason === undefined ? [] : [reason]),
]

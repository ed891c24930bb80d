import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { confirm } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine, renderFacts, type Fact, type Paper } from '../../ctl/layout.ts'
import { parseBody } from '../../ctl/reply.ts'
import type { ResetPlan, StopAccepted } from '../schemas.ts'

const path = `${hostPath}/actions/reset`

/** `edgehostctl host reset [NAME]`: shows what goes, and resets the host after its name was given. */
export async function resetHost(
  context: Context<'keep' | 'wipe' | 'dry-run' | 'force' | 'yes'>,
): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { keep, wipe, force, yes, 'dry-run': dryRun } = line.options
  const [named] = line.arguments
  const wish = {
    ...(keep === undefined ? {} : { keep }),
    ...(wipe === undefined ? {} : { wipe }),
  }
  const query = (more: Readonly<Record<string, string>>) =>
    `?${new URLSearchParams({ ...wish, ...more }).toString()}`
  const tried = await client.change('POST', path + query({ dryRun: 'true' }), {})
  const plan = parseBody<ResetPlan>(tried, ['hostName', 'removes', 'stays', 'problems'])
  if (dryRun !== undefined) {
    await output.show(plan, (paper) => renderPlan(plan, paper))
    return undefined
  }
  const hostName = named ?? askName(context, plan)
  if (named !== undefined && yes === undefined)
    confirm(terminal, {
      what: renderPlan(plan, output.paper).trimEnd(),
      ask: 'Reset it?',
      done: 'reset',
    })
  const reply = await client.change('POST', path + query(force === undefined ? {} : { force: 'true' }), {
    hostName,
  })
  const accepted = parseBody<StopAccepted>(reply, ['message', 'uid'])
  await output.show(accepted, () => `${oneLine(accepted.message)}\n`)
  return undefined
}

/** @throws Failure without a terminal */
function askName({ output, terminal }: Pick<Context, 'output' | 'terminal'>, plan: ResetPlan): string {
  const answer = terminal.ask(`${renderPlan(plan, output.paper)}The name of this host, to reset it: `)
  if (answer === undefined)
    throw new Failure(
      'usage',
      'there is no terminal to ask for the name of the host on: edgehostctl host reset NAME --yes. Nothing was reset',
    )
  if (answer.trim() === '') throw new Failure('failed', 'nothing was reset')
  return answer.trim()
}

function renderPlan({ hostName, removes, stays, problems }: ResetPlan, paper: Paper): string {
  const facts: Fact[] = [
    { label: 'Host', lines: [hostName] },
    ...removes.map(({ phase, items }): Fact => ({
      label: `Goes: ${phase}`,
      lines: items.length === 0 ? ['nothing'] : items,
      ...(items.length === 0 ? {} : { mood: 'warning' as const }),
    })),
    { label: 'Stays', lines: stays },
    ...(problems.length === 0 ? [] : [{ label: 'Needs --force', lines: problems, mood: 'bad' as const }]),
  ]
  return renderFacts(facts, paper)
}

import type { BundleDeletion } from '../schemas.ts'
import type { Context } from '../../ctl/context.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { parseBody, understand } from '../../ctl/reply.ts'
import { oneLine, plural } from '../../ctl/text.ts'
import { amount } from '../../ctl/amount.ts'
import { bundlePath } from './bundles.ts'

/** `edgehostctl content delete`: says what goes, and deletes it after a yes. */
export async function deleteBundle({
  client,
  line,
  output,
  terminal,
}: Context<'yes' | 'dry-run'>): Promise<undefined> {
  const path = bundlePath(line.arguments[0] ?? '')
  const isDryRun = line.options['dry-run'] !== undefined
  const reply = await client.change('DELETE', `${path}?dryRun=true`)
  const plan = parseBody<BundleDeletion>(reply, ['uid', 'name', 'entries', 'blobs', 'sizeBytes', 'holders'])
  if (!isDryRun) {
    const question = understand(() => {
      refuseNeeded(plan)
      return `The bundle ${oneLine(titleOf(plan))} goes, with ${describeLoss(plan)} that no other bundle has.`
    })
    if (line.options.yes === undefined) confirmDeletion(terminal, question)
    await client.change('DELETE', path)
  }
  await output.show(plan, (paper) =>
    renderFacts(
      [
        { label: 'Bundle', lines: [titleOf(plan)] },
        { label: isDryRun ? 'Would go' : 'Deleted', lines: [describeLoss(plan)] },
        ...(plan.holders.length > 0
          ? [{ label: 'Needed by', lines: [plan.holders.join(', ')], mood: 'warning' as const }]
          : []),
      ],
      paper,
    ),
  )
  return undefined
}

const describeLoss = ({ entries, blobs, sizeBytes }: BundleDeletion) =>
  `${plural(entries, 'entry', 'entries')} and ${plural(blobs, 'blob')} of ${amount(sizeBytes)}`

const titleOf = ({ name, uid }: BundleDeletion) => (name === '' ? uid : `${name} (${uid})`)

function refuseNeeded(plan: BundleDeletion): void {
  if (plan.holders.length === 0) return
  const needing = oneLine(plan.holders.join(', '))
  throw new Failure(
    'failed',
    `the bundle ${oneLine(titleOf(plan))} is needed by ${needing}; nothing was deleted`,
  )
}

import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/context.ts'
import { oneLine } from '../../ctl/text.ts'
import { clusterPath, hostPath, requireDetails } from '../../ctl/cluster-details.ts'
import type { EdgeHostInfo } from '../../host/schemas.ts'
import { waitUntilDeleted } from './watch.ts'

/** `edgehostctl cluster delete`: says what goes, and deletes it after a yes. */
export async function deleteCluster(context: Context<'yes' | 'wait'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const details = await requireDetails(context)
  const { name, id } = details.metadata
  if (line.options.yes === undefined) {
    const { spec } = await client.get<EdgeHostInfo>(hostPath, ['spec'])
    const left =
      spec.managementMode === 'local'
        ? ''
        : ' The platform manages it and still wants it: delete it there, or it is made anew with its next change.'
    confirmDeletion(
      terminal,
      `The cluster ${oneLine(name ?? '')} (${oneLine(id ?? '')}) goes, with everything that runs in it and the data of its volumes on this host. The content stays.${left}`,
    )
  }
  await client.change('DELETE', clusterPath)
  if (line.options.wait !== undefined) await waitUntilDeleted(context)
  else output.note('The cluster is being deleted: edgehostctl cluster watch')
  return undefined
}

import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { writeKubeconfigTo } from '../../ctl/write-kubeconfig.ts'
import { requireDetails } from '../../ctl/cluster-details.ts'

/** `edgehostctl cluster kubeconfig`. */
export async function writeKubeconfig(context: Context<'file'>): Promise<undefined> {
  const { line, output } = context
  const details = await requireDetails(context, { withKubeconfig: true })
  const { kubeconfig } = details.status
  if (kubeconfig === undefined)
    throw new Failure(
      'failed',
      'there is no kubeconfig: the control plane is not set up yet, or you are not an administrator of this host',
    )
  await writeKubeconfigTo(output, kubeconfig, line.options.file)
  return undefined
}

import { placeFile } from '../../system/place-file.ts'
import { removeOnSignal } from '../../program/remove-on-signal.ts'
import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { requireDetails } from './read-details.ts'

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
  const { file = '-' } = line.options
  if (output.format !== 'table') await output.show({ kubeconfig }, () => '')
  else if (file === '-') output.write(Buffer.from(kubeconfig))
  else {
    await placeFile({
      path: file,
      mode: 0o600,
      onBegin: removeOnSignal(),
      async write(handle) {
        await handle.writeFile(kubeconfig)
        await handle.sync()
      },
    }).catch((error: unknown) => {
      throw new Failure('failed', `${file} could not be written: ${(error as Error).message}`, {
        cause: error,
      })
    })
    output.note(`The kubeconfig is in ${file}.`)
  }
  return undefined
}

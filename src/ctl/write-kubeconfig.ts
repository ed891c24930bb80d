import { removeOnSignal } from '../program/remove-on-signal.ts'
import { placeFile } from '../system/place-file.ts'
import { Failure } from './exit-codes.ts'
import type { Output } from './output.ts'

/**
 * Writes a kubeconfig: as a document with `--output`, otherwise as it is into a file with mode 0600.
 * @param file - is standard output
 * @throws Failure where the file cannot be written
 */
export async function writeKubeconfigTo(output: Output, kubeconfig: string, file = '-'): Promise<void> {
  if (output.format !== 'table') {
    await output.show({ kubeconfig }, () => '')
    return
  }
  if (file === '-') {
    output.write(Buffer.from(kubeconfig))
    return
  }
  await placeFile({
    path: file,
    mode: 0o600,
    onBegin: removeOnSignal(),
    async write(handle) {
      await handle.writeFile(kubeconfig)
      await handle.sync()
    },
  }).catch((error: unknown) => {
    throw new Failure('failed', `${file} could not be written: ${(error as Error).message}`, { cause: error })
  })
  output.note(`The kubeconfig is in ${file}.`)
}

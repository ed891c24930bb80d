/**
 * What went wrong, of the last lines of kubeadm; one line. Its checks say `[ERROR Name]: reason`, a phase says
 * `error execution phase NAME: reason`.
 * @param output with the lines of standard error
 */
export function kubeadmFailure(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('To see the stack trace'))
  const matches = (form: RegExp) => [...new Set(lines.flatMap((line) => form.exec(line)?.[1] ?? []))]
  const checks = matches(/^\[ERROR [^\]]+\]: (.+)$/)
  const errors = matches(/^(?:error: )?(?:error execution phase \S+: |error: )(.+)$/)
  // In between is the chain of those who passed the error on.
  const images = lines.flatMap((line) => {
    const [, image, reason] = /^failed to pull image "([^"]+)": .*?([^:]+)$/.exec(line) ?? []
    return image === undefined ? [] : [`${image}: ${String(reason).trim()}`]
  })
  const found = [checks, images, errors].find(({ length }) => length > 0) ?? []
  return found.length > 0 ? found.join('; ') : (lines.at(-1) ?? 'kubeadm gave no reason')
}

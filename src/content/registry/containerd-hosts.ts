/** A registry as containerd reaches it. */
export interface ContainerdRegistry {
  /** `http://127.0.0.1:5081` */
  readonly url: string
  /** `user:password` in Base64; undefined where it answers without a password. */
  readonly basic: string | undefined
  /** Path of the certificate, PEM, of a registry with TLS. */
  readonly certificatePath: string | undefined
}

/** A registry that is asked for what the first does not have; its login stands elsewhere. */
interface NextRegistry {
  readonly url: string
  /** Lines about its certificate. */
  readonly trust: readonly string[]
}

/** A text of TOML, which reads the escapes of JSON. */
export const quote = (text: string): string => JSON.stringify(text)

/**
 * The file `_default/hosts.toml` of containerd 1.5 and later, and nerdctl. `_default` is for every registry that has no folder of its own.
 * Containerd 1.6 ignores a file with `server` alone, and after `[host]` it asks `server`, which by default is the registry of the image's
 * name on the internet; so the file has both, and both send the password, for which it has no other place than `header`.
 * Source: https://github.com/containerd/containerd/blob/main/docs/hosts.md
 * @param next asked after it; without one nothing else is
 */
export function containerdHosts(
  { url, basic, certificatePath }: ContainerdRegistry,
  heading: string,
  next?: NextRegistry,
): string {
  const ca = certificatePath === undefined ? [] : [`ca = ${quote(certificatePath)}`]
  const header = basic === undefined ? [] : [`Authorization = ${quote(`Basic ${basic}`)}`]
  const table = (name: string, lines: readonly string[]) =>
    lines.length > 0 ? [`[${name}]`, ...lines.map((line) => `  ${line}`), ''] : []
  const server = next
    ? [heading, `server = ${quote(next.url)}`, ...next.trust, '']
    : [
        `${heading} Images of all registries come from this one, and from nowhere else.`,
        '# Containerd 1.6 needs both: it ignores server without [host], and after [host] it asks server.',
        `server = ${quote(url)}`,
        ...ca,
        '',
        ...table('header', header),
      ]
  const lines = [
    ...server,
    ...table(`host.${quote(url)}`, ['capabilities = ["pull", "resolve"]', ...ca]),
    ...table(`host.${quote(url)}.header`, header),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

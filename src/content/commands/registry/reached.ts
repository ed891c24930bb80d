/** The registry of a host, as a container runtime reaches it. */
export interface ReachedRegistry {
  /** Host and port: `127.0.0.1:5081`. */
  readonly host: string
  readonly isTls: boolean
  /** Undefined where it answers without a password. */
  readonly login: { readonly username: string; readonly password: string } | undefined
  /** Of a registry with TLS: the certificate that the runtime has to trust, PEM. */
  readonly certificate: string | undefined
  /** Registries that the images of the host are of: `docker.io`, `registry.example:5000`. */
  readonly hosts: readonly string[]
}

/** A file of a container runtime. */
export interface ConfigurationFile {
  readonly path: string
  /** Permission bits, octal. Files with a password are for their owner alone. */
  readonly mode: '0600' | '0644'
  readonly content: string
}

/** What makes a container runtime pull from the registry. */
export interface RuntimeConfiguration {
  readonly files: readonly ConfigurationFile[]
  /** What is to be done beside the files, and what they do not do; whole sentences. */
  readonly steps: readonly string[]
}

export const urlOf = ({ isTls, host }: ReachedRegistry): string => `${isTls ? 'https' : 'http'}://${host}`

/** `user:password` in Base64, as HTTP (RFC 7617) and auth.json have it. */
export const basicOf = ({ username, password }: NonNullable<ReachedRegistry['login']>): string =>
  Buffer.from(`${username}:${password}`).toString('base64')

/** The mode of a file that may have the password. */
export const modeOf = ({ login }: ReachedRegistry): ConfigurationFile['mode'] => (login ? '0600' : '0644')

/** The certificate of a registry with TLS as a file; none without. */
export const certificateFile = ({ certificate }: ReachedRegistry, path: string): ConfigurationFile[] =>
  certificate === undefined ? [] : [{ path, mode: '0644', content: certificate }]

/** A string of TOML, YAML or JSON: all three read the escapes of JSON. */
export const quote = (text: string): string => JSON.stringify(text)

export const heading = '# Written by edgehostctl content registry config.'

/** What follows from a certificate in a file. */
export const certificateStep =
  'The certificate of the host is a file here: run this command again when it was renewed (edgehostctl status), or replace the file by that of your own authority.'

import Type, { type Static } from 'typebox'

/** The file with the proxies, mode 0600, that the drop-ins of the package name for `proxyUnits` (systemd/proxy.conf). */
export const environmentFile = '/etc/edgehostd/proxy.env'
/** Folder of `update-ca-certificates` for certificates of an administrator. */
export const authorityFolder = '/usr/local/share/ca-certificates'
/** Folder of the authorities of this host. */
export const trustFolder = '/etc/ssl/certs'
/** The program that makes authorities known, of the package ca-certificates. */
export const authorityProgram = '/usr/sbin/update-ca-certificates'
/** A database whose lock lets one change in at a time; it has the revision of the last one since the boot. */
export const lockFile = '/run/edgehostd/configuration.lock'

/** Units that get the proxies, and that read the authorities at their start alone; in the order of their restart. */
export const proxyUnits = ['containerd.service', 'edgehostd-containerd.service', 'kubelet.service'] as const

/** Files that have to be in place. */
export const Placement = Type.Object(
  {
    revision: Type.Integer({ minimum: 1 }),
    /** Content of the file of proxies; empty for no file. It has no character that systemd reads in another way. */
    environment: Type.String({ maxLength: 65_536, pattern: '^[A-Za-z0-9_="*.,:/@%\\[\\]~\\n-]*$' }),
    certificates: Type.Array(
      Type.String({
        maxLength: 262_144,
        pattern: '^-----BEGIN CERTIFICATE-----\\n[A-Za-z0-9+/=\\n]+\\n-----END CERTIFICATE-----\\n$',
      }),
      { maxItems: 1_000 },
    ),
  },
  { additionalProperties: false },
)
export type Placement = Static<typeof Placement>

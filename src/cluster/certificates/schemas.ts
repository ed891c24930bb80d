import { Type, type Static } from 'typebox'

const text = (description: string) => Type.String({ description })
const issueDate = text(
  'From when on it is valid, RFC 3339. A renewal may keep it; only expirationDate says that there was one.',
)
const expirationDate = text('When it ends, RFC 3339.')

export const ChildCerts = Type.Object(
  {
    name: text(
      'As kubeadm names it, for example apiserver or admin.conf; kubelet-client and kubelet-server.',
    ),
    nodeName: text('Node that has it.'),
    issueDate,
    expirationDate,
  },
  { title: 'ChildCerts' },
)
export type ChildCerts = Static<typeof ChildCerts>

export const CA = Type.Object(
  {
    name: text(
      'As kubeadm names it: ca, etcd-ca, front-proxy-ca; kubelet-server-ca is of the kubelet itself.',
    ),
    issueDate,
    expirationDate,
    childCerts: Type.Array(ChildCerts, { description: 'What it has signed.' }),
  },
  { title: 'CA' },
)
export type CA = Static<typeof CA>

export const CertificateRenewal = Type.Object(
  {
    uid: text('Of the action, as its POST gave it.'),
    by: text('Who asked for it.'),
    creationTimestamp: text('When it was asked for, RFC 3339.'),
    endTimestamp: Type.Optional(text('When it was done, RFC 3339; absent while it is under way.')),
    reason: Type.Optional(text('Why its last try failed; absent where none did.')),
  },
  { title: 'CertificateRenewal' },
)
export type CertificateRenewal = Static<typeof CertificateRenewal>

export const CertificateDetails = Type.Object(
  {
    needsRenewal: Type.Boolean({
      description:
        'Whether a certificate has to be renewed now: 30 days before its end, or when a third of a shorter life is left. edgehostd renews it by itself.',
    }),
    earliestAutoRenewalTime: Type.Optional(
      text('When edgehostd renews by itself the next time, RFC 3339; absent where it can renew none.'),
    ),
    certificates: Type.Array(CA, {
      description: 'The authorities with what they have signed; empty until the control plane is set up.',
    }),
    problems: Type.Array(Type.String(), {
      description: 'What ends soon and is not renewed by itself, and files that cannot be read.',
    }),
    renewal: Type.Optional(CertificateRenewal),
  },
  { title: 'CertificateDetails' },
)
export type CertificateDetails = Static<typeof CertificateDetails>

export const RenewalAccepted = Type.Object(
  { uid: text('Of the action; the same while one is under way.'), message: text('What is done now.') },
  { title: 'RenewalAccepted' },
)
export type RenewalAccepted = Static<typeof RenewalAccepted>

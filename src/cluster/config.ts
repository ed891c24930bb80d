import { Type, type Static } from 'typebox'
import { path, positive, strict } from '../config/schema-parts.ts'

/** The settings of the cluster; the section `cluster`. */
export const Cluster = Type.Object(
  {
    programs: Type.Object(
      {
        directory: Type.Optional(
          path(
            '/usr/bin',
            'Folder of this host with programs for the cluster: kubeadm, kubelet, kubectl, helm, etcdctl. Its programs are used from there; all others come from the content.',
          ),
        ),
      },
      strict,
    ),
    sshAccount: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_.@-]{0,254}$',
      default: 'root',
      accepts: 'the name of an account',
      description:
        'Account of this host that gets the SSH keys of the cluster, in a file of their own beside its authorized_keys.',
    }),
    update: Type.Object(
      {
        timeoutSeconds: positive(
          600,
          86_400,
          'A change of the cluster that is not available after this is taken back: the last good revision is applied again. A change of the version of Kubernetes does not count.',
        ),
        kubernetesTimeoutSeconds: positive(
          1_800,
          86_400,
          'A change of the version of Kubernetes that is not good after this is taken back.',
        ),
        apiSilentSeconds: positive(
          120,
          3_600,
          'A change of the version of Kubernetes is taken back when the API server has not answered for so long.',
        ),
      },
      strict,
    ),
    events: Type.Object(
      {
        retentionDays: positive(90, 36_500, 'Events of the cluster older than this are removed.'),
        maximum: positive(
          5_000,
          100_000,
          'Most events that are kept; beyond it the oldest are removed. Events of Kubernetes do not count.',
        ),
      },
      strict,
    ),
  },
  strict,
)

/** The section `cluster` of the configuration. */
export type ClusterSettings = Static<typeof Cluster>

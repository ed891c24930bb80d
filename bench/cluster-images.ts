import { cp, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { ratioFigure, type Figure } from './figure.ts'
import { spread } from './numbers.ts'

const state = '/var/lib/edgehostd'
const folder = `${state}/bench`

// A second containerd with the configuration of the cluster's own and an empty root: what one has of an image it does not pull again.
const containerd = `
folder=${folder} unit=bench-containerd.service
begin() {
  systemctl stop $unit 2> /dev/null || true
  rm -rf $folder/root /run/bench-containerd
  sed "s#^root = .*#root = \\"$folder/root\\"#; s#/run/edgehostd-containerd#/run/bench-containerd#; s#${state}/cluster/containerd/opt#$folder/opt#" \\
    ${state}/cluster/containerd-config/config.toml > $folder/config.toml
  systemd-run --quiet --collect --unit=$unit --property=KillMode=mixed containerd --config $folder/config.toml
  until ctr --address /run/bench-containerd/containerd.sock version > /dev/null 2>&1; do sleep 0.1; done
}
took() { local begun=$(date +%s%N); "$@" > /dev/null; echo $((($(date +%s%N) - begun) / 1000000)); }
`
const pull = `${containerd}
begin
sed 's#/run/edgehostd-containerd#/run/bench-containerd#' ${state}/cluster/kubeadm/init.yaml > $folder/init.yaml
took ${state}/cluster/programs/kubeadm/current/kubeadm config images pull --config $folder/init.yaml
`
// One archive, in which a layer that images share is once, as in the content store. Those of the kit are one for each image.
const archive = `${containerd}
begin
cri="ctr --address /run/bench-containerd/containerd.sock --namespace k8s.io images"
for each in $folder/images/*.tar; do $cri import "$each" > /dev/null; rm "$each"; done
$cri export $folder/images.tar $($cri list --quiet | grep -v '^sha256:')
`
const importAll = `${containerd}
begin
took ctr --address /run/bench-containerd/containerd.sock --namespace k8s.io images import $folder/images.tar
`
const end = `${containerd} systemctl stop $unit || true; rm -rf $folder /run/bench-containerd`

/** The images of Kubernetes pulled by kubeadm from the registry of the host, against the same images imported by ctr from one archive. */
export async function measureImagePulls(
  { host, kit }: ClusterHost,
  { rounds, say }: { readonly rounds: number; readonly say: (message: string) => void },
): Promise<Figure[]> {
  const wanted = JSON.parse(await host.read(`${state}/cluster/kubeadm/images.json`)) as readonly string[]
  const names = wanted.map((image) => image.slice(image.lastIndexOf('/') + 1).replace(':', '-'))
  const archives = (await readdir(await kit.images())).filter((each) => names.includes(each.slice(0, -4)))
  if (archives.length !== wanted.length)
    throw new Error(`of the images ${names.join(', ')} there are the archives ${archives.join(', ')}`)
  const images = join(`/proc/${host.leader}/root`, folder, 'images')
  await mkdir(images, { recursive: true })
  for (const each of archives) await cp(join(await kit.images(), each), join(images, each))
  const [own, base]: [number[], number[]] = [[], []]
  try {
    await host.sh(archive)
    const sides = [
      async () => own.push(Number(await host.sh(pull)) / 1_000),
      async () => base.push(Number(await host.sh(importAll)) / 1_000),
    ]
    for (let round = 0; round < rounds; round += 1) {
      say(`cluster: images, round ${round + 1} of ${rounds}`)
      // The order changes each round.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side()
    }
  } finally {
    await host.sh(end)
  }
  const name = 'cluster: images of Kubernetes by the registry into containerd'
  return [
    ratioFigure(`${name} ÷ ctr images import`, own, base, {
      target: '≤ 1.5',
      note: `${rounds} pairs, ${archives.length} images, into an empty containerd`,
    }),
    { name, value: spread(own), unit: 's' },
  ]
}

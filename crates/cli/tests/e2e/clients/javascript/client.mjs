// Tries the JavaScript client against the server of $KUBECONFIG; prints `ok NAME` or `FAIL NAME: why` for each thing.
import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const namespace = 'default';
const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);

const configMap = (name, team = 'javascript') => ({ metadata: { name, labels: { team } }, data: { n: '0' } });
const withType = (type) => k8s.setHeaderOptions('Content-Type', type);

/** The refusal of a call that must be refused. */
async function refused(code, call) {
  try {
    await call;
  } catch (error) {
    assert.equal(error.code, code, String(error));
    return error;
  }
  throw new Error('it was accepted');
}

const checks = {
  async 'create, update, conflict, delete'() {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('crud') });
    const changed = { ...made, data: { n: '1' } };
    assert.equal((await core.replaceNamespacedConfigMap({ namespace, name: 'crud', body: changed })).data.n, '1');
    await refused(409, core.replaceNamespacedConfigMap({ namespace, name: 'crud', body: made }));
    await core.deleteNamespacedConfigMap({ namespace, name: 'crud' });
    await refused(404, core.readNamespacedConfigMap({ namespace, name: 'crud' }));
  },

  async pages() {
    for (let n = 0; n < 5; n++) await core.createNamespacedConfigMap({ namespace, body: configMap(`page-${n}`, 'pages') });
    const names = [];
    let _continue;
    do {
      const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'team=pages', limit: 2, _continue });
      names.push(...page.items.map((item) => item.metadata.name));
      _continue = page.metadata._continue;
    } while (_continue);
    assert.deepEqual(names, [0, 1, 2, 3, 4].map((n) => `page-${n}`));
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'team=pages' });
  },

  async patches() {
    await core.createNamespacedConfigMap({ namespace, body: configMap('patched') });
    const operations = [{ op: 'replace', path: '/data/n', value: '7' }];
    const one = { namespace, name: 'patched' };
    const patched = await core.patchNamespacedConfigMap({ ...one, body: operations }, withType(k8s.PatchStrategy.JsonPatch));
    assert.equal(patched.data.n, '7');
    const merged = await core.patchNamespacedConfigMap({ ...one, body: { data: { m: '1' } } }, withType(k8s.PatchStrategy.MergePatch));
    assert.deepEqual(merged.data, { n: '7', m: '1' });
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { a: '1' } };
    const applied = await core.patchNamespacedConfigMap({ ...one, body, fieldManager: 'js' }, withType(k8s.PatchStrategy.ServerSideApply));
    assert.ok(applied.metadata.managedFields.some((entry) => entry.manager === 'js' && entry.operation === 'Apply'));
    await core.deleteNamespacedConfigMap(one);
  },

  async watch() {
    const since = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const told = [];
    await new Promise((resolve, reject) => {
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const query = { resourceVersion: since, labelSelector: 'team=watch' };
      const hear = (type, object) => {
        told.push(`${type} ${object.metadata.name}`);
        if (type === 'DELETED') resolve();
      };
      const stream = new k8s.Watch(config).watch(path, query, hear, reject);
      stream.then(async () => {
        await core.createNamespacedConfigMap({ namespace, body: configMap('watched', 'watch') });
        await core.deleteNamespacedConfigMap({ namespace, name: 'watched' });
      }).catch(reject);
    });
    assert.deepEqual(told, ['ADDED watched', 'DELETED watched']);
  },

  async informer() {
    const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'team=informed' });
    const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, 'team=informed');
    const told = [];
    await new Promise((resolve, reject) => {
      informer.on('add', (map) => told.push(`add ${map.metadata.name}`));
      informer.on('delete', (map) => { told.push(`delete ${map.metadata.name}`); resolve(); });
      informer.on('error', reject);
      informer.start().then(async () => {
        await core.createNamespacedConfigMap({ namespace, body: configMap('informed', 'informed') });
        await core.deleteNamespacedConfigMap({ namespace, name: 'informed' });
      }).catch(reject);
    });
    await informer.stop();
    assert.deepEqual(told, ['add informed', 'delete informed']);
  },

  async 'deployments and their scale'() {
    const labels = { app: 'js' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'nginx' }] } };
    const body = { metadata: { name: 'js' }, spec: { replicas: 1, selector: { matchLabels: labels }, template } };
    await apps.createNamespacedDeployment({ namespace, body });
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'js' });
    scale.spec.replicas = 3;
    await apps.replaceNamespacedDeploymentScale({ namespace, name: 'js', body: scale });
    assert.equal((await apps.readNamespacedDeployment({ namespace, name: 'js' })).spec.replicas, 3);
    await apps.deleteNamespacedDeployment({ namespace, name: 'js' });
  },

  async 'generic objects'() {
    const objects = k8s.KubernetesObjectApi.makeApiClient(config);
    const made = await objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'generic', namespace } });
    assert.ok(made.metadata.uid);
    await objects.delete(made);
  },

  async refusals() {
    const body = { metadata: { name: 'bad' }, spec: { containers: [{ name: 'Bad_Name', image: 'nginx' }] } };
    const refusal = await refused(422, core.createNamespacedPod({ namespace, body }));
    assert.match(String(refusal.body), /spec\.containers\[0\]\.name/);
  },
};

for (const [name, run] of Object.entries(checks)) {
  try {
    await run();
    console.log('ok', name);
  } catch (error) {
    console.log(`FAIL ${name}:`, error.stack);
    process.exitCode = 1;
  }
}
process.exit();
